select I.TARGET_KIND, count(*) ROW_COUNT
from WF_BULK_ITEMS I
where I.PLAN_ID = :PLAN_ID
group by I.TARGET_KIND
order by 2 desc, 1
fetch first :ROWS_MAX rows only
