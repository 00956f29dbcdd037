select QUEUE, count(*) as MESSAGES
from (select QUEUE from WF_MESSAGES indexed by WF_MESSAGES_WAIT where STATE = 1 order by VISIBLE_AT limit ?)
group by QUEUE
