select distinct 'functions' as WHAT, cast(F.value as text) as NAME, 0 as ROW_COUNT
from WF_NODES N, json_each(N.FUNCTIONS) F
order by 2
