select W.SPEC
from (select MIN(E.WAITING_TOKEN) TOKEN from WF_WAITS E where E.EVENT_TYPE = :EVENT_TYPE group by STANDARD_HASH(E.SPEC, 'SHA256')) F
join WF_WAITS W on W.WAITING_TOKEN = F.TOKEN
order by W.SPEC fetch first :ROWS_MAX rows only
