select count(*), coalesce(sum(AHEAD), 0)
from (select AHEAD from WF_INSTANCES indexed by WF_INSTANCES_AHEAD where AHEAD is not null limit ?)
