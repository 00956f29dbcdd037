select N.NODE_NO, N.NODE, N.ENGINE_VERSION, N.STARTED_ON_UTC,
  (select count(*) from (select 1 from WF_MESSAGES M indexed by WF_MESSAGES_LEASE where M.LEASE_OWNER = N.NODE_NO and M.STATE = 10 limit ?)) as HELD
from WF_NODES N order by N.NODE, N.NODE_NO limit ?
