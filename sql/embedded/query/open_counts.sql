select 'instances' as WHAT, 'pending' as NAME, count(*) as ROW_COUNT
from (select 1 from WF_INSTANCES indexed by WF_INSTANCES_STATUS where STATUS = 'pending' limit ?1)
union all
select 'instances', 'running', count(*)
from (select 1 from WF_INSTANCES indexed by WF_INSTANCES_STATUS where STATUS = 'running' limit ?1)
union all
select 'instances', 'waiting', count(*)
from (select 1 from WF_INSTANCES indexed by WF_INSTANCES_STATUS where STATUS = 'waiting' limit ?1)
union all
select 'instances', 'suspended', count(*)
from (select 1 from WF_INSTANCES indexed by WF_INSTANCES_STATUS where STATUS = 'suspended' limit ?1)
union all
select 'instances', 'faulted', count(*)
from (select 1 from WF_INSTANCES indexed by WF_INSTANCES_STATUS where STATUS = 'faulted' limit ?1)
union all
select 'tasks', 'open', count(*)
from (select 1 from WF_TASKS indexed by WF_TASKS_OPEN where STATUS in ('ready', 'reserved') limit ?1)
union all
select 'dead-letters', QUEUE, count(*)
from (select coalesce(QUEUE, '') as QUEUE from WF_DEAD_LETTERS limit ?1) group by QUEUE
