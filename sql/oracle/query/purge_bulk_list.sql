select B.PLAN_ID, coalesce((select min(I.ITEM_NO) from WF_BULK_ITEMS I where I.PLAN_ID = B.PLAN_ID), 0) FIRST_NO
from WF_BULK_PLANS B
where B.UPDATED_ON_UTC < CAST(:OVER_BEFORE AS TIMESTAMP(6))
order by B.PLAN_ID
fetch first :ROWS_MAX rows only
