select NAME, VALUE from WF_META where NAME like 'setting-%' order by NAME
