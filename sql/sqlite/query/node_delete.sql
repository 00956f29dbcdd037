delete from WF_NODES where NODE_NO = ?
