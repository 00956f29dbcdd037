select QUEUE, count(*) as MESSAGES
from (select QUEUE from WF_MESSAGES indexed by WF_MESSAGES_LEASE where STATE = 10 order by LEASE_OWNER limit ?)
group by QUEUE
