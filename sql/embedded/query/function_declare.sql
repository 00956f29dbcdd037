update WF_NODES set FUNCTIONS = ?1 where NODE_NO = (select max(NODE_NO) from WF_NODES where NODE = ?2)
