-- Publications of one name follow each other: who publishes has seen all the others.
alter table WF_DEFINITIONS add column ORDINAL integer not null default 0;
update WF_DEFINITIONS set ORDINAL = (
  select count(*) from WF_DEFINITIONS B
  where B.NAME = WF_DEFINITIONS.NAME
    and (B.PUBLISHED_ON_UTC, B.DEFINITION_NO) <= (WF_DEFINITIONS.PUBLISHED_ON_UTC, WF_DEFINITIONS.DEFINITION_NO));
create unique index WF_DEFINITIONS_ORDINAL on WF_DEFINITIONS (NAME, ORDINAL);
