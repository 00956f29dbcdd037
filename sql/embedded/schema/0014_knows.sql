-- What instances know now, with the names that the larger database has for it.
create view WF_V_STATES as
select INSTANCE_ID, STATE_VERSION,
       cast(STATE_JSON as text) -> '$.workflowState' as WORKFLOW_STATE_JSON,
       cast(STATE_JSON as text) -> '$.branches[0].data' as DATA_JSON,
       (select json_group_array(json(F.value -> '$.vars')) from json_each(cast(STATE_JSON as text), '$.branches') B, json_each(B.value, '$.frames') F
        where F.value -> '$.vars' is not null having count(*) > 0) as VARIABLES_JSON
from WF_STATES;
