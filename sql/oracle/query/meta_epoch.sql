select VALUE from WF_META where NAME like 'epoch-%' order by VALUE desc fetch first 1 rows only
