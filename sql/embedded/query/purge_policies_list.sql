select cast(P.DEFINITION_NO as text) as KEY, P.NAME || '@' || P.VERSION as TARGET
from (select D.DEFINITION_NO, D.NAME, D.VERSION, D.ORDINAL,
             (select min(N.PUBLISHED_ON_UTC) from WF_DEFINITIONS N where N.NAME = D.NAME and N.ORDINAL > D.ORDINAL) as REPLACED_ON_UTC
      from WF_DEFINITIONS D where D.NAME like 'policy:%') P
where P.REPLACED_ON_UTC < ?
  and not exists (select 1 from WF_INSTANCES I
                  where I.DEFINITION = substr(P.NAME, 8) and (I.STARTED_ON_UTC is null or I.STARTED_ON_UTC < P.REPLACED_ON_UTC + 86400000000))
order by P.NAME, P.ORDINAL
limit ?
