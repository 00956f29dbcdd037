update WF_NODES set ENGINE_VERSION = ? where NODE_NO = ?
