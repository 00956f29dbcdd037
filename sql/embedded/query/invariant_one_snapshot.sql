select I.INSTANCE_ID, 'it has a row and no snapshot' from WF_INSTANCES I
where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_NO = I.INSTANCE_NO and R.INSTANCE_ID = I.INSTANCE_ID)
union all
select R.INSTANCE_ID, 'it has a snapshot and no row' from WF_RUNTIME_STATES R
where not exists (select 1 from WF_INSTANCES I where I.INSTANCE_NO = R.INSTANCE_NO)
union all
select R.INSTANCE_ID, 'its snapshot is no JSON: engine-node doctor says what to do' from WF_DOCUMENTS R where R.STATE_TEXT is null
union all
select R.INSTANCE_ID, 'row ' || I.STATUS || ' version ' || I.STATE_VERSION || ', snapshot ' || (R.STATE_TEXT ->> '$.status') || ' version ' || R.STATE_VERSION
from WF_DOCUMENTS R
join WF_INSTANCES I on I.INSTANCE_NO = R.INSTANCE_NO
where R.STATE_TEXT is not null
  and (I.STATUS is not R.STATE_TEXT ->> '$.status' or I.STATE_VERSION > R.STATE_VERSION or R.STATE_VERSION <> R.STATE_TEXT ->> '$.version')
limit ?
