select W.WAITING_TOKEN, R.INSTANCE_ID, P.EVENT_TYPE, P.SPEC, case typeof(W.KEY_HASH) when 'blob' then lower(hex(W.KEY_HASH)) else W.KEY_HASH end as KEY_HASH,
  W.CREATED_ON_UTC
from WF_WAIT_SPECS P
join WF_WAITS W indexed by WF_WAITS_KEY on W.SPEC_NO = P.SPEC_NO
join WF_STATES R on R.INSTANCE_NO = W.INSTANCE_NO
where P.EVENT_TYPE = ? and P.SPEC = ? and W.KEY_HASH is ?
  and (W.INSTANCE_NO, W.WAITING_TOKEN) > (coalesce((select A.INSTANCE_NO from WF_STATES A where A.INSTANCE_ID = ?), 0), ?)
order by W.INSTANCE_NO, W.WAITING_TOKEN
limit ?
