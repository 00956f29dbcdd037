select count(*) as READY, min(SINCE) as OLDEST_ON_UTC
from (select coalesce(VISIBLE_AT, ENQ_AT) as SINCE from WF_MESSAGES indexed by WF_MESSAGES_READY
      where QUEUE = ? and STATE = 0 order by PRIORITY, MSG_ID limit ?)
