select coalesce(I.OUTCOME, 'open') OUTCOME, I.CODE, count(*) ROW_COUNT
from WF_BULK_ITEMS I
where I.PLAN_ID = :PLAN_ID
group by coalesce(I.OUTCOME, 'open'), I.CODE
order by 1, 3 desc, 2
