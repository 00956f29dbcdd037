select R.INSTANCE_NO, (select count(*) from WF_ACTIVITIES A where A.INSTANCE_NO = R.INSTANCE_NO),
       (select count(*) from WF_ACTIVITIES A where A.INSTANCE_NO = R.INSTANCE_NO and A.ACTIVITY_ID = ?)
from WF_STATES R
where R.INSTANCE_ID = ?
