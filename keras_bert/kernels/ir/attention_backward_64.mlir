module {
  tt.func public @backward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant 1.44269502 : f32
    %cst_0 = arith.constant dense<0> : tensor<64xi32>
    %cst_1 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_3 = arith.constant dense<16> : tensor<64x1xi32>
    %cst_4 = arith.constant dense<569420461> : tensor<64x1xi32>
    %cst_5 = arith.constant dense<15> : tensor<64x1xi32>
    %cst_6 = arith.constant dense<-749064809> : tensor<64x1xi32>
    %cst_7 = arith.constant dense<16> : tensor<1x64xi32>
    %cst_8 = arith.constant dense<569420461> : tensor<1x64xi32>
    %cst_9 = arith.constant dense<15> : tensor<1x64xi32>
    %cst_10 = arith.constant dense<-749064809> : tensor<1x64xi32>
    %cst_11 = arith.constant dense<-749064809> : tensor<64x64xi32>
    %cst_12 = arith.constant dense<15> : tensor<64x64xi32>
    %cst_13 = arith.constant dense<569420461> : tensor<64x64xi32>
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c-749064809_i32 = arith.constant -749064809 : i32
    %c15_i32 = arith.constant 15 : i32
    %c569420461_i32 = arith.constant 569420461 : i32
    %c16_i32 = arith.constant 16 : i32
    %c0_i32 = arith.constant 0 : i32
    %c128_i32 = arith.constant 128 : i32
    %cst_14 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_16 = arith.constant dense<0x7F800000> : tensor<64xf32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.extsi %length : i32 to i64
    %7 = arith.muli %3, %6 : i64
    %8 = arith.muli %heads, %c192_i32 : i32
    %9 = arith.extsi %8 : i32 to i64
    %10 = arith.muli %7, %9 : i64
    %11 = tt.addptr %qkv, %10 : !tt.ptr<$float>, i64
    %12 = arith.muli %1, %c64_i32 : i32
    %13 = tt.addptr %11, %12 : !tt.ptr<$float>, i32
    %14 = tt.addptr %d_qkv, %10 : !tt.ptr<$float>, i64
    %15 = tt.addptr %14, %12 : !tt.ptr<$float>, i32
    %16 = arith.extsi %4 : i32 to i64
    %17 = arith.muli %7, %16 : i64
    %18 = arith.extsi %12 : i32 to i64
    %19 = arith.addi %17, %18 : i64
    %20 = tt.addptr %out, %19 : !tt.ptr<$float>, i64
    %21 = tt.addptr %d_out, %19 : !tt.ptr<$float>, i64
    %22 = arith.extsi %heads : i32 to i64
    %23 = arith.muli %3, %22 : i64
    %24 = arith.extsi %1 : i32 to i64
    %25 = arith.addi %23, %24 : i64
    %26 = arith.muli %25, %6 : i64
    %27 = tt.addptr %log_sums, %26 : !tt.ptr<f32>, i64
    %28 = arith.muli %3, %c2_i64 : i64
    %29 = arith.muli %28, %6 : i64
    %30 = tt.addptr %groups, %29 : !tt.ptr<i32>, i64
    %31 = arith.muli %2, %heads : i32
    %32 = arith.addi %31, %1 : i32
    %33 = arith.muli %32, %length : i32
    %34 = tt.load %seed : !tt.ptr<i32>
    %35 = arith.shrui %34, %c16_i32 : i32
    %36 = arith.xori %34, %35 : i32
    %37 = arith.muli %36, %c569420461_i32 : i32
    %38 = arith.shrui %37, %c15_i32 : i32
    %39 = arith.xori %37, %38 : i32
    %40 = arith.muli %39, %c-749064809_i32 : i32
    %41 = arith.shrui %40, %c15_i32 : i32
    %42 = arith.xori %40, %41 : i32
    %43 = tt.addptr %seed, %c1_i32 : !tt.ptr<i32>, i32
    %44 = tt.load %43 : !tt.ptr<i32>
    %45 = arith.addi %42, %44 : i32
    %46 = arith.shrui %45, %c16_i32 : i32
    %47 = arith.xori %45, %46 : i32
    %48 = arith.muli %47, %c569420461_i32 : i32
    %49 = arith.shrui %48, %c15_i32 : i32
    %50 = arith.xori %48, %49 : i32
    %51 = arith.muli %50, %c-749064809_i32 : i32
    %52 = arith.shrui %51, %c15_i32 : i32
    %53 = arith.xori %51, %52 : i32
    %54 = arith.muli %0, %c64_i32 : i32
    %55 = tt.splat %54 : i32 -> tensor<64xi32>
    %56 = arith.addi %55, %5 : tensor<64xi32>
    %57 = tt.expand_dims %56 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %58 = tt.splat %length : i32 -> tensor<64x1xi32>
    %59 = arith.cmpi slt, %57, %58 : tensor<64x1xi32>
    %60 = tt.splat %8 : i32 -> tensor<64x1xi32>
    %61 = arith.muli %57, %60 : tensor<64x1xi32>
    %62 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %63 = tt.broadcast %61 : tensor<64x1xi32> -> tensor<64x64xi32>
    %64 = tt.broadcast %62 : tensor<1x64xi32> -> tensor<64x64xi32>
    %65 = arith.addi %63, %64 : tensor<64x64xi32>
    %66 = tt.addptr %13, %4 : !tt.ptr<$float>, i32
    %67 = tt.splat %66 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %68 = tt.addptr %67, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %69 = tt.broadcast %59 : tensor<64x1xi1> -> tensor<64x64xi1>
    %70 = tt.load %68, %69, %cst_14 : tensor<64x64x!tt.ptr<$float>>
    %71 = arith.muli %heads, %c128_i32 : i32
    %72 = tt.addptr %13, %71 : !tt.ptr<$float>, i32
    %73 = tt.splat %72 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %74 = tt.addptr %73, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %75 = tt.load %74, %69, %cst_14 : tensor<64x64x!tt.ptr<$float>>
    %76:2 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_15, %arg14 = %cst_15) -> (tensor<64x64xf32>, tensor<64x64xf32>)  : i32 {
      %111 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %112 = arith.addi %111, %5 : tensor<64xi32>
      %113 = tt.expand_dims %112 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %114 = arith.cmpi slt, %113, %58 : tensor<64x1xi32>
      %115 = arith.muli %113, %60 : tensor<64x1xi32>
      %116 = tt.broadcast %115 : tensor<64x1xi32> -> tensor<64x64xi32>
      %117 = arith.addi %116, %64 : tensor<64x64xi32>
      %118 = tt.splat %4 : i32 -> tensor<64x1xi32>
      %119 = arith.muli %113, %118 : tensor<64x1xi32>
      %120 = tt.broadcast %119 : tensor<64x1xi32> -> tensor<64x64xi32>
      %121 = arith.addi %120, %64 : tensor<64x64xi32>
      %122 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %123 = tt.addptr %122, %117 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %124 = tt.broadcast %114 : tensor<64x1xi1> -> tensor<64x64xi1>
      %125 = tt.load %123, %124, %cst_14 : tensor<64x64x!tt.ptr<$float>>
      %126 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %127 = tt.addptr %126, %121 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %128 = tt.load %127, %124, %cst_14 : tensor<64x64x!tt.ptr<$float>>
      %129 = tt.splat %21 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %130 = tt.addptr %129, %121 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %131 = tt.load %130, %124, %cst_14 : tensor<64x64x!tt.ptr<$float>>
      %132 = tt.splat %length : i32 -> tensor<64xi32>
      %133 = arith.cmpi slt, %112, %132 : tensor<64xi32>
      %134 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %135 = tt.addptr %134, %112 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %136 = tt.load %135, %133, %cst_16 : tensor<64x!tt.ptr<f32>>
      %137 = arith.extf %128 : tensor<64x64x$float> to tensor<64x64xf32>
      %138 = arith.extf %131 : tensor<64x64x$float> to tensor<64x64xf32>
      %139 = arith.mulf %137, %138 : tensor<64x64xf32>
      %140 = "tt.reduce"(%139) <{axis = 1 : i32}> ({
      ^bb0(%arg15: f32, %arg16: f32):
        %232 = arith.addf %arg15, %arg16 : f32
        tt.reduce.return %232 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %141 = tt.splat %33 : i32 -> tensor<64xi32>
      %142 = arith.addi %141, %112 : tensor<64xi32>
      %143 = tt.trans %125 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %144 = tt.dot %70, %143, %cst_15, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %145 = arith.mulf %scale, %cst : f32
      %146 = tt.splat %145 : f32 -> tensor<64x64xf32>
      %147 = arith.mulf %144, %146 : tensor<64x64xf32>
      %148 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %149 = tt.addptr %148, %112 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %150 = tt.load %149, %133, %cst_0 : tensor<64x!tt.ptr<i32>>
      %151 = arith.cmpi slt, %56, %132 : tensor<64xi32>
      %152 = tt.addptr %30, %length : !tt.ptr<i32>, i32
      %153 = tt.splat %152 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %154 = tt.addptr %153, %56 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %155 = tt.load %154, %151, %cst_1 : tensor<64x!tt.ptr<i32>>
      %156 = tt.expand_dims %150 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %157 = tt.expand_dims %155 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %158 = tt.broadcast %156 : tensor<1x64xi32> -> tensor<64x64xi32>
      %159 = tt.broadcast %157 : tensor<64x1xi32> -> tensor<64x64xi32>
      %160 = arith.cmpi eq, %158, %159 : tensor<64x64xi32>
      %161 = arith.select %160, %cst_15, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
      %162 = arith.addf %147, %161 : tensor<64x64xf32>
      %163 = tt.expand_dims %136 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %164 = tt.broadcast %163 : tensor<1x64xf32> -> tensor<64x64xf32>
      %165 = arith.subf %162, %164 : tensor<64x64xf32>
      %166 = math.exp2 %165 : tensor<64x64xf32>
      %167 = tt.trans %131 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %168 = tt.dot %75, %167, %cst_15, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %169 = tt.expand_dims %142 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %170 = arith.addi %53, %c1_i32 : i32
      %171 = arith.shrui %170, %c16_i32 : i32
      %172 = arith.xori %170, %171 : i32
      %173 = arith.muli %172, %c569420461_i32 : i32
      %174 = arith.shrui %173, %c15_i32 : i32
      %175 = arith.xori %173, %174 : i32
      %176 = arith.muli %175, %c-749064809_i32 : i32
      %177 = arith.shrui %176, %c15_i32 : i32
      %178 = arith.xori %176, %177 : i32
      %179 = tt.splat %178 : i32 -> tensor<1x64xi32>
      %180 = arith.addi %169, %179 : tensor<1x64xi32>
      %181 = arith.shrui %180, %cst_7 : tensor<1x64xi32>
      %182 = arith.xori %180, %181 : tensor<1x64xi32>
      %183 = arith.muli %182, %cst_8 : tensor<1x64xi32>
      %184 = arith.shrui %183, %cst_9 : tensor<1x64xi32>
      %185 = arith.xori %183, %184 : tensor<1x64xi32>
      %186 = arith.muli %185, %cst_10 : tensor<1x64xi32>
      %187 = arith.shrui %186, %cst_9 : tensor<1x64xi32>
      %188 = arith.xori %186, %187 : tensor<1x64xi32>
      %189 = arith.addi %53, %c2_i32 : i32
      %190 = arith.shrui %189, %c16_i32 : i32
      %191 = arith.xori %189, %190 : i32
      %192 = arith.muli %191, %c569420461_i32 : i32
      %193 = arith.shrui %192, %c15_i32 : i32
      %194 = arith.xori %192, %193 : i32
      %195 = arith.muli %194, %c-749064809_i32 : i32
      %196 = arith.shrui %195, %c15_i32 : i32
      %197 = arith.xori %195, %196 : i32
      %198 = tt.splat %197 : i32 -> tensor<64x1xi32>
      %199 = arith.addi %57, %198 : tensor<64x1xi32>
      %200 = arith.shrui %199, %cst_3 : tensor<64x1xi32>
      %201 = arith.xori %199, %200 : tensor<64x1xi32>
      %202 = arith.muli %201, %cst_4 : tensor<64x1xi32>
      %203 = arith.shrui %202, %cst_5 : tensor<64x1xi32>
      %204 = arith.xori %202, %203 : tensor<64x1xi32>
      %205 = arith.muli %204, %cst_6 : tensor<64x1xi32>
      %206 = arith.shrui %205, %cst_5 : tensor<64x1xi32>
      %207 = arith.xori %205, %206 : tensor<64x1xi32>
      %208 = tt.broadcast %188 : tensor<1x64xi32> -> tensor<64x64xi32>
      %209 = tt.broadcast %207 : tensor<64x1xi32> -> tensor<64x64xi32>
      %210 = arith.xori %208, %209 : tensor<64x64xi32>
      %211 = arith.muli %210, %cst_13 : tensor<64x64xi32>
      %212 = arith.shrui %211, %cst_12 : tensor<64x64xi32>
      %213 = arith.xori %211, %212 : tensor<64x64xi32>
      %214 = arith.muli %213, %cst_11 : tensor<64x64xi32>
      %215 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %216 = arith.cmpi uge, %214, %215 : tensor<64x64xi32>
      %217 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %218 = arith.mulf %166, %217 : tensor<64x64xf32>
      %219 = arith.select %216, %218, %cst_15 : tensor<64x64xi1>, tensor<64x64xf32>
      %220 = arith.mulf %168, %217 : tensor<64x64xf32>
      %221 = arith.select %216, %220, %cst_15 : tensor<64x64xi1>, tensor<64x64xf32>
      %222 = tt.expand_dims %140 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %223 = tt.broadcast %222 : tensor<1x64xf32> -> tensor<64x64xf32>
      %224 = arith.subf %221, %223 : tensor<64x64xf32>
      %225 = arith.mulf %166, %224 : tensor<64x64xf32>
      %226 = tt.splat %scale : f32 -> tensor<64x64xf32>
      %227 = arith.mulf %225, %226 : tensor<64x64xf32>
      %228 = arith.truncf %219 : tensor<64x64xf32> to tensor<64x64x$float>
      %229 = arith.truncf %227 : tensor<64x64xf32> to tensor<64x64x$float>
      %230 = tt.dot %228, %131, %arg14, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %231 = tt.dot %229, %125, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %231, %230 : tensor<64x64xf32>, tensor<64x64xf32>
    }
    %77 = tt.addptr %15, %4 : !tt.ptr<$float>, i32
    %78 = tt.splat %77 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %79 = tt.addptr %78, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %80 = arith.truncf %76#0 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %79, %80, %69 : tensor<64x64x!tt.ptr<$float>>
    %81 = tt.addptr %15, %71 : !tt.ptr<$float>, i32
    %82 = tt.splat %81 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %83 = tt.addptr %82, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %84 = arith.truncf %76#1 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %83, %84, %69 : tensor<64x64x!tt.ptr<$float>>
    %85 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %86 = arith.muli %57, %85 : tensor<64x1xi32>
    %87 = tt.broadcast %86 : tensor<64x1xi32> -> tensor<64x64xi32>
    %88 = arith.addi %87, %64 : tensor<64x64xi32>
    %89 = tt.splat %13 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %90 = tt.addptr %89, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %91 = tt.load %90, %69, %cst_14 : tensor<64x64x!tt.ptr<$float>>
    %92 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %93 = tt.addptr %92, %88 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %94 = tt.load %93, %69, %cst_14 : tensor<64x64x!tt.ptr<$float>>
    %95 = tt.splat %21 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %96 = tt.addptr %95, %88 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %97 = tt.load %96, %69, %cst_14 : tensor<64x64x!tt.ptr<$float>>
    %98 = tt.splat %length : i32 -> tensor<64xi32>
    %99 = arith.cmpi slt, %56, %98 : tensor<64xi32>
    %100 = tt.splat %27 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %101 = tt.addptr %100, %56 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %102 = tt.load %101, %99, %cst_16 : tensor<64x!tt.ptr<f32>>
    %103 = arith.extf %94 : tensor<64x64x$float> to tensor<64x64xf32>
    %104 = arith.extf %97 : tensor<64x64x$float> to tensor<64x64xf32>
    %105 = arith.mulf %103, %104 : tensor<64x64xf32>
    %106 = "tt.reduce"(%105) <{axis = 1 : i32}> ({
    ^bb0(%arg12: f32, %arg13: f32):
      %111 = arith.addf %arg12, %arg13 : f32
      tt.reduce.return %111 : f32
    }) : (tensor<64x64xf32>) -> tensor<64xf32>
    %107 = scf.for %arg12 = %c0_i32 to %length step %c64_i32 iter_args(%arg13 = %cst_15) -> (tensor<64x64xf32>)  : i32 {
      %111 = tt.splat %arg12 : i32 -> tensor<64xi32>
      %112 = arith.addi %111, %5 : tensor<64xi32>
      %113 = tt.expand_dims %112 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %114 = arith.cmpi slt, %113, %58 : tensor<64x1xi32>
      %115 = arith.muli %113, %60 : tensor<64x1xi32>
      %116 = tt.broadcast %115 : tensor<64x1xi32> -> tensor<64x64xi32>
      %117 = arith.addi %116, %64 : tensor<64x64xi32>
      %118 = tt.addptr %67, %117 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %119 = tt.broadcast %114 : tensor<64x1xi1> -> tensor<64x64xi1>
      %120 = tt.load %118, %119, %cst_14 : tensor<64x64x!tt.ptr<$float>>
      %121 = tt.addptr %73, %117 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %122 = tt.load %121, %119, %cst_14 : tensor<64x64x!tt.ptr<$float>>
      %123 = tt.splat %33 : i32 -> tensor<64xi32>
      %124 = arith.addi %123, %56 : tensor<64xi32>
      %125 = tt.trans %91 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %126 = tt.dot %120, %125, %cst_15, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %127 = arith.mulf %scale, %cst : f32
      %128 = tt.splat %127 : f32 -> tensor<64x64xf32>
      %129 = arith.mulf %126, %128 : tensor<64x64xf32>
      %130 = tt.splat %30 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %131 = tt.addptr %130, %56 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %132 = tt.load %131, %99, %cst_0 : tensor<64x!tt.ptr<i32>>
      %133 = arith.cmpi slt, %112, %98 : tensor<64xi32>
      %134 = tt.addptr %30, %length : !tt.ptr<i32>, i32
      %135 = tt.splat %134 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %136 = tt.addptr %135, %112 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %137 = tt.load %136, %133, %cst_1 : tensor<64x!tt.ptr<i32>>
      %138 = tt.expand_dims %132 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %139 = tt.expand_dims %137 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %140 = tt.broadcast %138 : tensor<1x64xi32> -> tensor<64x64xi32>
      %141 = tt.broadcast %139 : tensor<64x1xi32> -> tensor<64x64xi32>
      %142 = arith.cmpi eq, %140, %141 : tensor<64x64xi32>
      %143 = arith.select %142, %cst_15, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
      %144 = arith.addf %129, %143 : tensor<64x64xf32>
      %145 = tt.expand_dims %102 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %146 = tt.broadcast %145 : tensor<1x64xf32> -> tensor<64x64xf32>
      %147 = arith.subf %144, %146 : tensor<64x64xf32>
      %148 = math.exp2 %147 : tensor<64x64xf32>
      %149 = tt.trans %97 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %150 = tt.dot %122, %149, %cst_15, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %151 = tt.expand_dims %124 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %152 = arith.addi %53, %c1_i32 : i32
      %153 = arith.shrui %152, %c16_i32 : i32
      %154 = arith.xori %152, %153 : i32
      %155 = arith.muli %154, %c569420461_i32 : i32
      %156 = arith.shrui %155, %c15_i32 : i32
      %157 = arith.xori %155, %156 : i32
      %158 = arith.muli %157, %c-749064809_i32 : i32
      %159 = arith.shrui %158, %c15_i32 : i32
      %160 = arith.xori %158, %159 : i32
      %161 = tt.splat %160 : i32 -> tensor<1x64xi32>
      %162 = arith.addi %151, %161 : tensor<1x64xi32>
      %163 = arith.shrui %162, %cst_7 : tensor<1x64xi32>
      %164 = arith.xori %162, %163 : tensor<1x64xi32>
      %165 = arith.muli %164, %cst_8 : tensor<1x64xi32>
      %166 = arith.shrui %165, %cst_9 : tensor<1x64xi32>
      %167 = arith.xori %165, %166 : tensor<1x64xi32>
      %168 = arith.muli %167, %cst_10 : tensor<1x64xi32>
      %169 = arith.shrui %168, %cst_9 : tensor<1x64xi32>
      %170 = arith.xori %168, %169 : tensor<1x64xi32>
      %171 = arith.addi %53, %c2_i32 : i32
      %172 = arith.shrui %171, %c16_i32 : i32
      %173 = arith.xori %171, %172 : i32
      %174 = arith.muli %173, %c569420461_i32 : i32
      %175 = arith.shrui %174, %c15_i32 : i32
      %176 = arith.xori %174, %175 : i32
      %177 = arith.muli %176, %c-749064809_i32 : i32
      %178 = arith.shrui %177, %c15_i32 : i32
      %179 = arith.xori %177, %178 : i32
      %180 = tt.splat %179 : i32 -> tensor<64x1xi32>
      %181 = arith.addi %113, %180 : tensor<64x1xi32>
      %182 = arith.shrui %181, %cst_3 : tensor<64x1xi32>
      %183 = arith.xori %181, %182 : tensor<64x1xi32>
      %184 = arith.muli %183, %cst_4 : tensor<64x1xi32>
      %185 = arith.shrui %184, %cst_5 : tensor<64x1xi32>
      %186 = arith.xori %184, %185 : tensor<64x1xi32>
      %187 = arith.muli %186, %cst_6 : tensor<64x1xi32>
      %188 = arith.shrui %187, %cst_5 : tensor<64x1xi32>
      %189 = arith.xori %187, %188 : tensor<64x1xi32>
      %190 = tt.broadcast %170 : tensor<1x64xi32> -> tensor<64x64xi32>
      %191 = tt.broadcast %189 : tensor<64x1xi32> -> tensor<64x64xi32>
      %192 = arith.xori %190, %191 : tensor<64x64xi32>
      %193 = arith.muli %192, %cst_13 : tensor<64x64xi32>
      %194 = arith.shrui %193, %cst_12 : tensor<64x64xi32>
      %195 = arith.xori %193, %194 : tensor<64x64xi32>
      %196 = arith.muli %195, %cst_11 : tensor<64x64xi32>
      %197 = tt.splat %threshold : i32 -> tensor<64x64xi32>
      %198 = arith.cmpi uge, %196, %197 : tensor<64x64xi32>
      %199 = tt.splat %factor : f32 -> tensor<64x64xf32>
      %200 = arith.mulf %150, %199 : tensor<64x64xf32>
      %201 = arith.select %198, %200, %cst_15 : tensor<64x64xi1>, tensor<64x64xf32>
      %202 = tt.expand_dims %106 {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %203 = tt.broadcast %202 : tensor<1x64xf32> -> tensor<64x64xf32>
      %204 = arith.subf %201, %203 : tensor<64x64xf32>
      %205 = arith.mulf %148, %204 : tensor<64x64xf32>
      %206 = tt.splat %scale : f32 -> tensor<64x64xf32>
      %207 = arith.mulf %205, %206 : tensor<64x64xf32>
      %208 = arith.truncf %207 : tensor<64x64xf32> to tensor<64x64x$float>
      %209 = tt.trans %208 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %210 = tt.dot %209, %120, %arg13, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %210 : tensor<64x64xf32>
    }
    %108 = tt.splat %15 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
    %109 = tt.addptr %108, %65 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %110 = arith.truncf %107 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %109, %110, %69 : tensor<64x64x!tt.ptr<$float>>
    tt.return
  }
}
