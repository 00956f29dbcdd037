-- Sub-workflows: the children of an instance are found by their parent.
create index WF_INSTANCES_PARENT on WF_INSTANCES (PARENT_ID) where PARENT_ID is not null;
