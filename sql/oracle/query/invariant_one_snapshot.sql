select V.ABOUT, V.FOUND from (
  select I.INSTANCE_ID ABOUT, 'it has a row and no snapshot' FOUND from WF_INSTANCES I
  where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_ID = I.INSTANCE_ID)
  union all
  select R.INSTANCE_ID, 'it has a snapshot and no row' from WF_RUNTIME_STATES R
  where not exists (select 1 from WF_INSTANCES I where I.INSTANCE_ID = R.INSTANCE_ID)
  union all
  select R.INSTANCE_ID, 'row ' || I.STATUS || ' version ' || I.STATE_VERSION || ', snapshot ' || R.RUNTIME_STATUS || ' version ' || R.STATE_VERSION
  from WF_RUNTIME_STATES R
  join WF_INSTANCES I on I.INSTANCE_ID = R.INSTANCE_ID
  where I.STATUS <> R.RUNTIME_STATUS or I.STATE_VERSION > R.STATE_VERSION
) V
fetch first :ROWS_MAX rows only
