select PLAN_ID as KEY, PLAN_ID as TARGET from WF_BULK_PLANS
where UPDATED_ON_UTC < ?
order by PLAN_ID
limit ?
