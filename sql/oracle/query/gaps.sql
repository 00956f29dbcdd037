select count(*) INSTANCES, coalesce(sum(G.AHEAD), 0) SIGNALS
from (select I.AHEAD from WF_INSTANCES I where I.AHEAD > 0 fetch first :ROWS_MAX rows only) G
