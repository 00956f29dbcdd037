select I.INSTANCE_ID from WF_INSTANCES I
where I.ENDED_ON_UTC < CAST(:ENDED_BEFORE AS TIMESTAMP(6)) and I.STATUS in ('completed', 'cancelled', 'compensated')
  and not exists (select 1 from WF_STREAM S where CASE WHEN S.PROCESSED = 0 THEN S.INSTANCE_ID END = I.INSTANCE_ID)
  and not (I.INSTANCE_ID like 'schedule.%' and exists (select 1 from WF_INSTANCES C
            where CASE WHEN C.ENDED_ON_UTC IS NULL THEN C.DEFINITION END = I.DEFINITION and C.PARENT_ID like 'schedule.%'
              and (C.PARENT_ID = I.INSTANCE_ID or C.STARTED_ON_UTC is null or C.STARTED_ON_UTC - INTERVAL '1' DAY <= I.ENDED_ON_UTC)))
order by I.ENDED_ON_UTC
fetch first :ROWS_MAX rows only
