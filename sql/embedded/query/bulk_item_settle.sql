update WF_BULK_ITEMS set OUTCOME = ?, CODE = ?, DETAIL = ?, ENDED_ON_UTC = ?
where PLAN_ID = ? and ITEM_NO = ? and OUTCOME is null
