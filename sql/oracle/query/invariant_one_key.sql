select max(S.INSTANCE_ID), 'key ' || S.EFFECT_KEY || ': ' || count(distinct S.INSTANCE_ID) || ' instances, ' || count(case when S.PROCESSED = 0 then 1 end)
  || ' open commands, ' || count(distinct JSON_VALUE(S.DATA FORMAT JSON, '$.target')) || ' targets'
from WF_STREAM S
where S.EFFECT_KEY like '________________/%/%/____________'
group by S.EFFECT_KEY
having count(distinct S.INSTANCE_ID) > 1 or count(case when S.PROCESSED = 0 then 1 end) > 1 or count(distinct JSON_VALUE(S.DATA FORMAT JSON, '$.target')) > 1
fetch first :ROWS_MAX rows only
