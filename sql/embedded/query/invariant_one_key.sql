select coalesce(max(R.INSTANCE_ID), 'no instance'), 'key ' || S.EFFECT_KEY || ': ' || count(distinct S.INSTANCE_NO) || ' instances, ' || sum(S.PROCESSED = 0) || ' open commands, '
  || count(distinct json_array(json_remove(json_extract(cast(S.DATA as text), '$.target', '$.input'), iif(json_extract(cast(S.DATA as text), '$.target') = 'event:publish', '$[1].time', '$[2]')))) || ' requests'
from (select INSTANCE_NO, PROCESSED, DATA, json_extract(cast(DATA as text), '$.key') as EFFECT_KEY from WF_STREAM
  where PROCESSED is not null and (PROCESSED = 0 or GIVEN_UP_ON_UTC is null) and json_valid(cast(DATA as text))) S
left join WF_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
where S.EFFECT_KEY like '________________/%/%/____________'
group by S.EFFECT_KEY
having count(distinct S.INSTANCE_NO) > 1 or sum(S.PROCESSED = 0) > 1
  or count(distinct json_array(json_remove(json_extract(cast(S.DATA as text), '$.target', '$.input'), iif(json_extract(cast(S.DATA as text), '$.target') = 'event:publish', '$[1].time', '$[2]')))) > 1
limit ?
