-- Values of their data by which instances are found: see metadata.searchAttributes. A key is in the order of the values of
-- its type, whatever that is.
create table WF_ATTRIBUTES (
  INSTANCE_NO integer not null,
  NAME        text not null,
  KIND        text not null, -- text, decimal, boolean, time
  VALUE       text,          -- as people read it
  VALUE_KEY   blob not null,
  primary key (INSTANCE_NO, NAME)
) without rowid;
create index WF_ATTRIBUTES_VALUE on WF_ATTRIBUTES (NAME, VALUE_KEY, INSTANCE_NO);

create view WF_V_ATTRIBUTES as
select R.INSTANCE_ID, A.NAME, A.KIND, A.VALUE
from WF_ATTRIBUTES A
join WF_STATES R on R.INSTANCE_NO = A.INSTANCE_NO;
