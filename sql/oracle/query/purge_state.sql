delete from WF_RUNTIME_STATES where INSTANCE_ID = :INSTANCE_ID
and exists (select 1 from WF_INSTANCES I where I.INSTANCE_ID = WF_RUNTIME_STATES.INSTANCE_ID
            and I.ENDED_ON_UTC < CAST(:ENDED_BEFORE AS TIMESTAMP(6)) and I.STATUS in ('completed', 'cancelled', 'compensated'))
