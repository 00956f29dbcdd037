select (select count(*) from WF_ACTIVITIES A where A.INSTANCE_ID = I.INSTANCE_ID),
       (select count(*) from WF_ACTIVITIES A where A.INSTANCE_ID = I.INSTANCE_ID and A.ACTIVITY_ID = :ACTIVITY_ID)
from WF_INSTANCES I
where I.INSTANCE_ID = :INSTANCE_ID
