select 'message ' || M.MSG_ID, 'queue ' || M.QUEUE || ', state ' || M.STATE || ', with node run ' || coalesce(M.LEASE_OWNER, 'none') from WF_MESSAGES M
where (M.STATE = 10) <> (M.LEASE_OWNER is not null) or M.STATE not in (0, 1, 10)
  or M.STATE = 10 and not exists (select 1 from WF_NODES N where N.NODE_NO = M.LEASE_OWNER)
union all
select R.INSTANCE_ID, 'command ' || S.POSITION || ' is claimed by node run ' || S.CLAIMED_BY || ', which is not known'
from WF_STREAM S
join WF_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
where S.PROCESSED = 0 and S.CLAIMED_BY is not null and not exists (select 1 from WF_NODES N where N.NODE_NO = S.CLAIMED_BY)
limit ?
