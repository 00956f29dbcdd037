lock table WF_NODES in exclusive mode wait 1
