select VALUE from WF_META where NAME like 'epoch-%' order by VALUE desc limit 1
