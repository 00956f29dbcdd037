select I.INSTANCE_ID from WF_INSTANCES I
where I.ENDED_ON_UTC < CAST(:ENDED_BEFORE AS TIMESTAMP(6)) and I.STATUS in ('completed', 'cancelled')
order by I.ENDED_ON_UTC
fetch first :ROWS_MAX rows only
