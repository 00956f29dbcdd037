select N.RUN_ID from WF_NODES N where N.NODE = :NODE
