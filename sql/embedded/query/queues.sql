select 'signal' as QUEUE, 0 as STATE, count(*) as MESSAGES, min(SINCE) as OLDEST_ON_UTC
from (select coalesce(VISIBLE_AT, ENQ_AT) as SINCE from WF_MESSAGES indexed by WF_MESSAGES_READY
      where QUEUE = 'signal' and STATE = 0 order by PRIORITY, MSG_ID limit ?)
union all
select 'schedule' as QUEUE, 0 as STATE, count(*) as MESSAGES, min(SINCE) as OLDEST_ON_UTC
from (select coalesce(VISIBLE_AT, ENQ_AT) as SINCE from WF_MESSAGES indexed by WF_MESSAGES_READY
      where QUEUE = 'schedule' and STATE = 0 order by PRIORITY, MSG_ID limit ?)
union all
select 'command' as QUEUE, 0 as STATE, count(*) as MESSAGES, min(SINCE) as OLDEST_ON_UTC
from (select coalesce(VISIBLE_AT, ENQ_AT) as SINCE from WF_MESSAGES indexed by WF_MESSAGES_READY
      where QUEUE = 'command' and STATE = 0 order by PRIORITY, MSG_ID limit ?)
union all
select QUEUE, 1, count(*), null
from (select QUEUE from WF_MESSAGES indexed by WF_MESSAGES_WAIT where STATE = 1 order by VISIBLE_AT limit ?)
group by QUEUE
union all
select QUEUE, 10, count(*), null
from (select QUEUE from WF_MESSAGES indexed by WF_MESSAGES_LEASE where STATE = 10 order by LEASE_OWNER limit ?)
group by QUEUE
