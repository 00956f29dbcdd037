select coalesce(OUTCOME, 'open') as OUTCOME, CODE, count(*) as ROW_COUNT
from WF_BULK_ITEMS
where PLAN_ID = ?
group by coalesce(OUTCOME, 'open'), CODE
order by 1, 3 desc, 2
