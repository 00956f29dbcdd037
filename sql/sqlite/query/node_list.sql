select NODE_NO, NODE from WF_NODES order by NODE_NO
