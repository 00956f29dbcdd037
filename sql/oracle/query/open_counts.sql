select 'instances' WHAT, 'pending' NAME, count(*) ROW_COUNT
from (select I.STATUS from WF_INSTANCES I where I.STATUS = 'pending' fetch first :MAX_1 rows only) C1
union all
select 'instances', 'running', count(*)
from (select I.STATUS from WF_INSTANCES I where I.STATUS = 'running' fetch first :MAX_2 rows only) C2
union all
select 'instances', 'waiting', count(*)
from (select I.STATUS from WF_INSTANCES I where I.STATUS = 'waiting' fetch first :MAX_3 rows only) C3
union all
select 'instances', 'suspended', count(*)
from (select I.STATUS from WF_INSTANCES I where I.STATUS = 'suspended' fetch first :MAX_4 rows only) C4
union all
select 'instances', 'faulted', count(*)
from (select I.STATUS from WF_INSTANCES I where I.STATUS = 'faulted' fetch first :MAX_5 rows only) C5
union all
select 'tasks', 'open', count(*)
from (select T.STATUS from WF_TASKS T where T.STATUS in ('ready', 'reserved') fetch first :MAX_6 rows only) C6
union all
select 'dead-letters', D.QUEUE, count(*)
from (select L.QUEUE from WF_DEAD_LETTERS L fetch first :MAX_7 rows only) D group by D.QUEUE
