select TARGET_KIND, count(*) as ROW_COUNT
from WF_BULK_ITEMS
where PLAN_ID = ?
group by TARGET_KIND
order by 2 desc, 1
limit ?
