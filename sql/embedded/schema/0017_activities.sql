-- What applications note of instances: nothing that a node decides looks there.
create table WF_ACTIVITIES (
  INSTANCE_NO      integer not null,
  ACTIVITY_ID      text not null,
  NAME             text not null,
  STATUS           text,
  ACTIVITY_VERSION integer not null,
  CREATED_ON_UTC   integer not null,
  CREATED_BY       text,
  UPDATED_ON_UTC   integer not null,
  UPDATED_BY       text,
  FROZEN_ON_UTC    integer, -- null: it may change
  DATA             blob,
  primary key (INSTANCE_NO, ACTIVITY_ID)
);
create index WF_ACTIVITIES_ORDER on WF_ACTIVITIES (INSTANCE_NO, CREATED_ON_UTC, ACTIVITY_ID);
create view WF_V_ACTIVITIES as
select R.INSTANCE_ID, A.ACTIVITY_ID, A.NAME, A.STATUS, A.ACTIVITY_VERSION, A.CREATED_ON_UTC, A.CREATED_BY, A.UPDATED_ON_UTC, A.UPDATED_BY, A.FROZEN_ON_UTC,
       cast(A.DATA as text) as DATA_JSON
from WF_ACTIVITIES A
join WF_STATES R on R.INSTANCE_NO = A.INSTANCE_NO;
