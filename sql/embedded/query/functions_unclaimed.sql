select 'unclaimed' as WHAT, coalesce(case when json_valid(C.BODY) then json_extract(C.BODY, '$.target') end, '') as NAME, count(*) as ROW_COUNT
from (select cast(DATA as text) as BODY from WF_STREAM indexed by WF_STREAM_PENDING where PROCESSED = 0 and CLAIMED_BY is null limit ?1) C
group by 2
order by 2
