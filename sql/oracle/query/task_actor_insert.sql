insert into WF_TASK_ACTORS (TASK_ID, KIND, NAME) values (:TASK_ID, :KIND, :NAME)
