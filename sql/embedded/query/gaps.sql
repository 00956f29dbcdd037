select count(*) as INSTANCES, sum(AHEAD) as SIGNALS
from (select AHEAD from WF_INSTANCES indexed by WF_INSTANCES_AHEAD where AHEAD is not null limit ?)
