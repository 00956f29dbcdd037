select I.INSTANCE_NO, I.INSTANCE_ID from WF_INSTANCES I indexed by WF_INSTANCES_ENDED
where I.ENDED_ON_UTC < ? and I.STATUS in ('completed', 'cancelled', 'compensated')
  and not exists (select 1 from WF_STREAM S not indexed
                  where S.ENTRY_NO between I.INSTANCE_NO << 24 and (I.INSTANCE_NO + 1 << 24) - 1 and S.PROCESSED = 0)
  and not (I.INSTANCE_ID like 'schedule.%' and exists (select 1 from WF_INSTANCES C
            where C.DEFINITION = I.DEFINITION and C.ENDED_ON_UTC is null and C.PARENT_ID like 'schedule.%' -- it passes on the end of a run
              and (C.PARENT_ID = I.INSTANCE_ID or C.STARTED_ON_UTC is null or C.STARTED_ON_UTC <= I.ENDED_ON_UTC + 86400000000))) -- no later one has to do with it
order by I.ENDED_ON_UTC
limit ?
