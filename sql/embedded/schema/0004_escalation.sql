-- Escalation of human tasks, and the role by which an assignee holds one.
alter table WF_TASKS add column ESCALATE_TO text;
alter table WF_TASKS add column ESCALATED_ON_UTC integer;
alter table WF_TASKS add column ASSIGNED_AS text;
