select INSTANCE_NO, INSTANCE_ID from WF_INSTANCES indexed by WF_INSTANCES_ENDED
where ENDED_ON_UTC < ? and STATUS in ('completed', 'cancelled')
order by ENDED_ON_UTC
limit ?
