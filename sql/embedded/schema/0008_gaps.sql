-- Signals with a sequence that an instance keeps until their turn comes: null when there are none.
alter table WF_INSTANCES add column AHEAD integer;
create index WF_INSTANCES_AHEAD on WF_INSTANCES (AHEAD) where AHEAD is not null;
