select 'unclaimed' WHAT, C.TARGET NAME, count(*) ROW_COUNT
from (select JSON_VALUE(S.DATA FORMAT JSON, '$.target') TARGET from WF_STREAM S where (CASE WHEN PROCESSED = 0 THEN INSTANCE_ID END) is not null and S.CLAIMED_BY is null fetch first :MAX_ROWS rows only) C
group by C.TARGET
order by C.TARGET
