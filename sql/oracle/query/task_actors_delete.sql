delete from WF_TASK_ACTORS where TASK_ID = :TASK_ID and KIND in ('U', 'G')
