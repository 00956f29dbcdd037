delete from WF_BULK_PLANS where PLAN_ID = ?
