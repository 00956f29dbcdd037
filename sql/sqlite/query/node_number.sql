select max(NODE_NO) from WF_NODES where NODE = ?
